//! Addresses with a query, put together without leaving anything to chance.

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
