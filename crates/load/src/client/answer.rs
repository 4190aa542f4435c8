//! Parses an answer's head in place: status line, length, and the headers a replay must repeat.
//!
//! Returns an error, never a panic, on any bytes, and reads no more than the bounds below.

/// More than twice the head of any server under test.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// An answer has some hundred bytes, one to a thousand transfers a hundred thousand.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Headers that a stored answer keeps besides its status and body.
const KEPT_HEADERS: [&[u8]; 3] = [b"content-type", b"location", b"idempotency-expires"];

/// Errors of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first line is no HTTP/1 status line with a final status.
    #[error("the first line is not an HTTP/1.1 status line; is this an HTTP server?")]
    StatusLine,
    /// A header line without a name, folded, or not ended by CR LF.
    #[error("a header line is malformed")]
    HeaderLine,
    /// The head does not end.
    #[error("the head has more than 16 KiB")]
    HeadTooLong,
    /// The announced body is larger than the limit.
    #[error("the body has more than 1 MiB")]
    BodyTooLong,
    /// `Content-Length` is no number, or is given twice with different values.
    #[error("the Content-Length header is not a number")]
    Length,
    /// Neither length nor encoding is given.
    #[error(
        "there is no Content-Length header; the server must send one for the load generator to know the end"
    )]
    NoLength,
    /// The body has a transfer encoding.
    #[error("the body is chunked; the load generator reads only answers with a Content-Length")]
    Chunked,
    /// More bytes came than the length announced.
    #[error("there are bytes after the end of the body")]
    Trailing,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

/// Positions of an answer's parts in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// The answer carries `Idempotent-Replayed: true`.
    pub(crate) replayed: bool,
    /// The server closes the connection after this answer.
    pub(crate) closes: bool,
    kept: [Option<Span>; KEPT_HEADERS.len()],
    body: Span,
}

/// A whole answer, borrowed from the connection's buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) head: Head,
    pub(crate) bytes: &'a [u8],
}

impl Head {
    /// `None` while the head is not complete.
    pub(crate) fn scan(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some(first) = line_end(bytes, 0)? else {
            return Ok(None);
        };
        let (status, mut closes) = status_line(&bytes[..first])?;
        let (mut length, mut replayed, mut kept) = (None, false, [None; KEPT_HEADERS.len()]);
        let mut start = first + 2;
        let body_start = loop {
            let Some(end) = line_end(bytes, start)? else {
                return Ok(None);
            };
            if end == start {
                break end + 2;
            }
            let (name, value) = header_line(bytes, Span { start, end })?;
            let text = &bytes[value.start..value.end];
            start = end + 2;
            // The length of a name tells most headers apart, so most lines cost one comparison.
            match name.len() {
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    let told = number(text)?;
                    if length.is_some_and(|before| before != told) {
                        return Err(Malformed::Length);
                    }
                    length = Some(told);
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => return Err(Malformed::Chunked),
                10 if name.eq_ignore_ascii_case(b"connection") => {
                    closes |= text.eq_ignore_ascii_case(b"close");
                }
                19 if name.eq_ignore_ascii_case(b"idempotent-replayed") => {
                    replayed = text.eq_ignore_ascii_case(b"true");
                }
                8 | 12 | 19 => {
                    for (slot, wanted) in kept.iter_mut().zip(KEPT_HEADERS) {
                        if name.eq_ignore_ascii_case(wanted) {
                            *slot = Some(value);
                        }
                    }
                }
                _ => {}
            }
        };
        let length = match (length, status) {
            (_, 204 | 304) => 0,
            (Some(length), _) => length,
            (None, _) => return Err(Malformed::NoLength),
        };
        let body = Span { start: body_start, end: body_start + length };
        Ok(Some(Self { status, replayed, closes, kept, body }))
    }

    /// Number of bytes of the whole answer.
    pub(crate) fn answer_len(&self) -> usize {
        self.body.end
    }
}

impl<'a> Answer<'a> {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.head.status)
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        self.cut(self.head.body)
    }

    /// Whether this is a replay of `first`: marked as one, with the same status, body and kept
    /// headers, byte for byte.
    pub(crate) fn repeats(&self, first: &Answer<'_>) -> bool {
        let same_headers = first.head.kept.iter().zip(self.head.kept).all(|(then, now)| match (then, now) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(then), Some(now)) => first.cut(*then) == self.cut(now),
        });
        self.head.replayed
            && self.head.status == first.head.status
            && self.body() == first.body()
            && same_headers
    }

    fn cut(&self, span: Span) -> &'a [u8] {
        &self.bytes[span.start..span.end]
    }
}

/// Position of the CR that ends the line, or `None` if the line is not complete.
fn line_end(bytes: &[u8], start: usize) -> Result<Option<usize>, Malformed> {
    let bound = bytes.len().min(HEAD_BYTES_MAX);
    let line = bytes.get(start..bound).unwrap_or_default();
    match line.iter().position(|b| *b == b'\n') {
        Some(0) => Err(Malformed::HeaderLine),
        Some(at) if line[at - 1] == b'\r' => Ok(Some(start + at - 1)),
        Some(_) => Err(Malformed::HeaderLine),
        None if bytes.len() >= HEAD_BYTES_MAX => Err(Malformed::HeadTooLong),
        None => Ok(None),
    }
}

fn status_line(line: &[u8]) -> Result<(u16, bool), Malformed> {
    let (rest, closes) = match (line.strip_prefix(b"HTTP/1.1 "), line.strip_prefix(b"HTTP/1.0 ")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return Err(Malformed::StatusLine),
    };
    match rest {
        // Informational answers (1xx) only follow requests this client never sends.
        [a @ b'2'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']
        | [a @ b'2'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            Ok((digit(a) * 100 + digit(b) * 10 + digit(c), closes))
        }
        _ => Err(Malformed::StatusLine),
    }
}

fn header_line(bytes: &[u8], line: Span) -> Result<(&[u8], Span), Malformed> {
    let text = &bytes[line.start..line.end];
    let colon = text.iter().position(|b| *b == b':').ok_or(Malformed::HeaderLine)?;
    let name = &text[..colon];
    if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
        return Err(Malformed::HeaderLine);
    }
    let value = &text[colon + 1..];
    let blank = |b: &&u8| matches!(b, b' ' | b'\t');
    let leading = value.iter().take_while(blank).count();
    let trailing = value[leading..].iter().rev().take_while(blank).count();
    Ok((name, Span { start: line.start + colon + 1 + leading, end: line.end - trailing }))
}

fn number(text: &[u8]) -> Result<usize, Malformed> {
    if text.is_empty() {
        return Err(Malformed::Length);
    }
    text.iter().try_fold(0_usize, |sum, byte| {
        if !byte.is_ascii_digit() {
            return Err(Malformed::Length);
        }
        let sum = sum * 10 + usize::from(byte - b'0');
        if sum > BODY_BYTES_MAX { Err(Malformed::BodyTooLong) } else { Ok(sum) }
    })
}

#[cfg(test)]
mod tests;
