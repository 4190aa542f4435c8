use super::*;
use crate::transfer::Transfers;
use crate::transfer::tests::pairs;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn request(work: Work, connection: usize) -> Request {
    let plan = crate::plan::tests::small("127.0.0.1:1".parse().unwrap());
    Request::new(&plan, Arc::new(work), connection)
}

fn parts(bytes: &[u8]) -> (String, Value) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn a_number_decides_the_whole_request() {
    let mut request = request(Work::Charge, 7);
    let first = request.numbered(12_345).to_vec();
    assert_eq!(request.key(), "run1-0007-0000012345");
    let (head, body) = parts(&first);
    assert!(head.starts_with("POST /v1/charges HTTP/1.1\r\nHost: localhost\r\n"));
    assert!(head.ends_with("\r\nIdempotency-Key: run1-0007-0000012345"));
    let expected = json!({
        "amount": 4345, "currency": "USD", "payment_method": "pm_card_visa", "description": "bench",
        "metadata": {"order": "0000012345"},
    });
    assert_eq!(body, expected);
    let second = request.numbered(8_999).to_vec();
    assert_eq!(parts(&second).1["amount"], 9999);
    assert_eq!(second.len(), first.len());
    assert_eq!(request.numbered(12_345), first);
}

#[test]
fn a_transfer_names_a_pair_that_follows_from_its_number() {
    let known: BTreeSet<(String, String)> = pairs(50).into_iter().collect();
    let mut request = request(Work::Transfer(Transfers { pairs: pairs(50), batch: 1 }), 3);
    let mut used = BTreeSet::new();
    for number in 0..500 {
        let bytes = request.numbered(number).to_vec();
        let (head, body) = parts(&bytes);
        assert!(head.starts_with("POST /v1/transfers HTTP/1.1\r\n"), "{head}");
        let name = |field: &str| body[field].as_str().unwrap().to_owned();
        assert_eq!(
            body,
            json!({
                "from": name("from"), "to": name("to"), "amount": 1000 + number, "currency": "USD",
            })
        );
        used.insert((name("from"), name("to")));
        assert_eq!(request.numbered(number), bytes);
    }
    assert_eq!(used, known, "every pair is used, and no other");
}

#[test]
fn a_request_with_many_transfers_repeats_none_of_the_one_before() {
    let mut request = request(Work::Transfer(Transfers { pairs: pairs(1), batch: 10 }), 0);
    let amounts = |bytes: &[u8]| -> Vec<i64> {
        let (head, body) = parts(bytes);
        assert!(head.starts_with("POST /v1/transactions/bulk HTTP/1.1\r\n"), "{head}");
        let items = body["transactions"].as_array().unwrap();
        items.iter().map(|item| item["amount"].as_i64().unwrap()).collect()
    };
    assert_eq!(amounts(request.numbered(0)), (1000..1010).collect::<Vec<_>>());
    assert_eq!(amounts(request.numbered(1)), (1010..1020).collect::<Vec<_>>());
}
