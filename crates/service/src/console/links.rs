//! Addresses with a query, put together without leaving anything to chance, and pages of a list.

pub(super) const PAGE_ROWS: usize = 50;
/// One more than a page shows tells whether there is another.
pub(super) const PAGE_READ: usize = PAGE_ROWS + 1;

/// Cuts off what was read beyond the page, and says after which row the next one begins.
pub(super) fn cut<T>(rows: &mut Vec<T>, key: impl Fn(&T) -> String) -> Option<String> {
    let more = rows.len() > PAGE_ROWS;
    rows.truncate(PAGE_ROWS);
    rows.last().filter(|_| more).map(key)
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    path: String,
    query: Vec<(String, String)>,
}

impl Link {
    pub(super) fn to(path: &str) -> Self {
        Self { path: path.to_owned(), query: Vec::new() }
    }

    /// Left out where it is empty.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.query.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The same query at another address.
    pub(super) fn at(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(super) fn text(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.query);
        format!("{}?{}", self.path, query.finish())
    }
}
