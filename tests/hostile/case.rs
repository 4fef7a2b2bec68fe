//! One thing that is tried, and what must come of it.

/// A command that must be refused.
pub struct Case {
    /// What it is, for those who have to find out why it failed.
    pub what: String,
    /// Files it needs, below the root. They are gone afterwards.
    pub files: Vec<(String, Vec<u8>)>,
    pub args: Vec<Vec<u8>>,
    pub stdin: Vec<u8>,
    /// The exit code, and a word of the message.
    pub code: i32,
    pub word: String,
}

impl Case {
    /// Bad usage or bad input, unless said otherwise.
    pub fn refused(args: &[&str], word: &str) -> Self {
        Self {
            what: args.join(" "),
            files: Vec::new(),
            args: args.iter().map(|arg| arg.as_bytes().to_vec()).collect(),
            stdin: Vec::new(),
            code: 2,
            word: word.to_owned(),
        }
    }

    /// Given on standard input.
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = input.into();
        self.what = format!("{} < {}", self.what, shown(&self.stdin));
        self
    }

    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        let content = content.into();
        self.what = format!("{} with {path}: {}", self.what, shown(&content));
        self.files.push((path.to_owned(), content));
        self
    }

    /// One more argument, of any bytes.
    pub fn argument(mut self, bytes: &[u8]) -> Self {
        self.what = format!("{} {}", self.what, shown(bytes));
        self.args.push(bytes.to_vec());
        self
    }

    pub fn code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }
}

/// The beginning of it.
pub fn shown(bytes: &[u8]) -> String {
    let text = bytes[..bytes.len().min(160)].escape_ascii().to_string();
    if bytes.len() > 160 { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

/// Brackets within brackets.
pub fn nested(levels: usize) -> String {
    "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels)
}
