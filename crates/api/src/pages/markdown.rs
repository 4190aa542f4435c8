//! The part of Markdown that the error pages use: headings, paragraphs, lists, fenced code, `code`
//! and links to this server.

/// Renders a page as HTML and escapes all of its text.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            out.extend(["<pre><code>", &escape(&code.join("\n")), "</code></pre>\n"]);
        } else if let Some(heading) = line.strip_prefix("# ") {
            out.extend(["<h1>", &inline(heading), "</h1>\n"]);
        } else if let Some(heading) = line.strip_prefix("## ") {
            out.extend(["<h2>", &inline(heading), "</h2>\n"]);
        } else if let Some(first) = line.strip_prefix("- ") {
            out.extend(["<ul><li>", &inline(first), "</li>"]);
            while let Some(item) = lines.next_if(|line| line.starts_with("- ")) {
                out.extend(["<li>", &inline(item.trim_start_matches("- ")), "</li>"]);
            }
            out.push_str("</ul>\n");
        } else if !line.is_empty() {
            out.extend(["<p>", &inline(line), "</p>\n"]);
        }
    }
    out
}

/// Renders `code` between backticks and `[name](/path)`.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            out.extend(["<code>", &escape(part), "</code>"]);
        } else {
            links(part, &mut out);
        }
    }
    out
}

fn links(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((before, name, path, after)) = next_link(rest) {
        out.extend([&escape(before), "<a href=\"", &escape(path), "\">", &escape(name), "</a>"]);
        rest = after;
    }
    out.push_str(&escape(rest));
}

fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, rest) = text.split_once('[')?;
    let (name, rest) = rest.split_once("](/")?;
    let (path, after) = rest.split_once(')')?;
    // The path includes the slash, which keeps the link on this server.
    let start = text.len() - rest.len() - 1;
    let path = text.get(start..start + 1 + path.len())?;
    Some((before, name, path, after))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_of_a_page_are_rendered_and_escaped() {
        let page = "# a_b\n\nStatus 400. <b>&\n\n## Do\n\n- send `x<y`\n- see [z](/errors/z) now\n\n```json\n{\"a\": 1}\n```\n";
        assert_eq!(
            html(page),
            "<h1>a_b</h1>\n<p>Status 400. &lt;b&gt;&amp;</p>\n<h2>Do</h2>\n<ul><li>send <code>x&lt;y</code></li><li>see <a href=\"/errors/z\">z</a> now</li></ul>\n<pre><code>{&quot;a&quot;: 1}</code></pre>\n"
        );
    }
}
