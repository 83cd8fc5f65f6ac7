//! What the partner API answers to bad input, asked of the real binary over a plain socket.
//!
//! The cases are data: one TOML file per table, readable as documentation, each case spoiling one
//! thing of a right request (`order.toml` is the right order). What takes more than one request to
//! show is a test named as a sentence, in the module of its endpoint.

mod bearer;
mod case;
mod create;
mod merchant;
mod query;
mod running;
mod stage;
mod template;
mod token;
mod verdict;
mod wire;

use stage::Stage;

#[test]
fn every_case_of_the_token_table_is_answered_as_listed() {
    Stage::default().run("token.toml", include_str!("token.toml"));
}

#[test]
fn every_case_of_the_bearer_table_is_answered_as_listed() {
    Stage::default().run("bearer.toml", include_str!("bearer.toml"));
}

#[test]
fn every_case_about_the_body_of_a_creation_is_answered_as_listed() {
    Stage::default().run("create_body.toml", include_str!("create_body.toml"));
}

#[test]
fn every_case_about_the_fields_of_a_creation_is_answered_as_listed() {
    Stage::default().run("create_fields.toml", include_str!("create_fields.toml"));
}

#[test]
fn every_case_about_the_urls_of_a_creation_is_answered_as_listed() {
    Stage::default().run("create_urls.toml", include_str!("create_urls.toml"));
}

#[test]
fn every_case_about_the_http_of_a_creation_is_answered_as_listed() {
    Stage::default().run("create_http.toml", include_str!("create_http.toml"));
}

#[test]
fn every_case_of_the_query_table_is_answered_as_listed() {
    Stage::default().run("query.toml", include_str!("query.toml"));
}

#[test]
fn of_several_faults_the_first_in_order_of_precedence_is_told() {
    Stage::default().run("precedence.toml", include_str!("precedence.toml"));
}
