//! Each role may do what this table says, and a refusal changes nothing.

use hyper::StatusCode;
use svc_service::domain::{Permission, Role};

use super::world::World;
use crate::support::*;

on_both_engines! {
    every_action_is_allowed_or_refused_by_role,
    pages_offer_only_what_their_reader_may_do,
}

/// Written down once more, so that the code cannot agree with itself.
fn may(role: Role, is_operator: bool, permission: Permission) -> bool {
    use Permission::*;
    let of_partner: &[Role] = match permission {
        CancelOrders => &[Role::Owner, Role::Support],
        ResendWebhooks | Simulate => &[Role::Owner, Role::Developer, Role::Support],
        ManageKeys => &[Role::Owner, Role::Developer],
        ManagePeople => &[Role::Owner],
        ResolveExceptions | ReadAudit => &[],
    };
    let of_operator: &[Role] = match permission {
        ResolveExceptions => &[Role::Owner, Role::Support],
        ReadAudit => &Role::ALL,
        _ => of_partner,
    };
    (if is_operator { of_operator } else { of_partner }).contains(&role)
}

/// An action, what it needs, and the target with a form that does it.
async fn actions(
    world: &World,
    person: i64,
) -> Vec<(Permission, &'static str, String, &'static str)> {
    use Permission::*;
    let open = format!("/console/orders/{}", world.open.reference_number.as_str());
    let client = format!("/console/partners/{}", world.service.partner.client_id.as_str());
    let uuid = application(&world.service.partner);
    vec![
        (ReadAudit, "get", "/console/audit".to_owned(), ""),
        (ManagePeople, "get", "/console/people".to_owned(), ""),
        (ManagePeople, "post", "/console/people".to_owned(), "login=NEW&role=reader"),
        (ManagePeople, "post", format!("/console/people/{person}"), "change=role&role=support"),
        (ResendWebhooks, "post", format!("/console/webhooks/{}/resend", world.event().await), ""),
        (ResendWebhooks, "post", "/console/webhooks/recover".to_owned(), "hours=1"),
        (ManageKeys, "post", format!("{client}/rotate"), "overlap=1"),
        (ManageKeys, "post", format!("{client}/revoke"), ""),
        (ManageKeys, "post", format!("/console/applications/{uuid}/rotate"), "overlap=1"),
        (
            ResolveExceptions,
            "post",
            format!("/console/exceptions/{}/resolve", world.exception().await),
            "resolution=dismiss&reason=because",
        ),
        (Simulate, "post", "/console/clock".to_owned(), "minutes=1"),
        (Simulate, "post", format!("{open}/simulate"), "outcome=pending"),
        // Last: it ends the order.
        (CancelOrders, "post", format!("{open}/cancel"), ""),
    ]
}

async fn every_action_is_allowed_or_refused_by_role(database: TestDatabase) {
    let world = World::start(database).await;
    let mut tried = 0;
    for (is_operator, of) in [(false, Some(&world.service.partner)), (true, None)] {
        // Readers first: whoever may do nothing must leave everything as it is.
        for role in Role::ALL.into_iter().rev() {
            let login = format!("{}-{is_operator}", role.as_str());
            let person = world.person(&format!("colleague-of-{login}"), of, Role::Reader).await;
            let viewer = world.enter(&login, of, role).await;
            for (permission, verb, target, form) in actions(&world, person).await {
                // What was sent again has arrived again.
                world.until_delivered().await;
                let before = world.state_of_loja().await;
                let history = world.service.count("audit").await;
                let form = form.replace("NEW", &format!("new-{login}"));
                let answer = match verb {
                    "get" => world.get(&viewer, &target).await,
                    _ => world.post(&viewer, &target, &form).await,
                };
                let case = format!("{login} {verb} {target}: {}", answer.text);
                if may(role, is_operator, permission) {
                    // A held order's exception cannot be dismissed; that is no question of rights.
                    assert!([200, 303, 409].contains(&answer.status.as_u16()), "{case}");
                } else {
                    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{case}");
                    assert_eq!(world.state_of_loja().await, before, "{case}");
                    assert_eq!(world.service.count("audit").await, history, "{case}");
                }
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 2 * 4 * 13);
    assert_eq!(world.status_of(&world.open).await, "CAN", "somebody may");
}

async fn pages_offer_only_what_their_reader_may_do(database: TestDatabase) {
    let world = World::start(database).await;
    let order = format!("/console/orders/{}", world.open.reference_number.as_str());
    let event = format!("/console/webhooks/{}", world.event().await);
    let pages = [
        (order.as_str(), "/cancel\"", Permission::CancelOrders),
        (&order, "/simulate\"", Permission::Simulate),
        ("/console/webhooks", "/console/webhooks/recover", Permission::ResendWebhooks),
        (&event, "webhook-signature", Permission::ResendWebhooks),
        ("/console/developers", "/rotate\"", Permission::ManageKeys),
        ("/console", "href=\"/console/people\"", Permission::ManagePeople),
        ("/console", "href=\"/console/audit\"", Permission::ReadAudit),
        ("/console/exceptions", "/resolve\"", Permission::ResolveExceptions),
    ];
    for (is_operator, of) in [(false, Some(&world.service.partner)), (true, None)] {
        for role in Role::ALL {
            let viewer = world.enter(&format!("{}-{is_operator}", role.as_str()), of, role).await;
            for (page, offer, permission) in pages {
                let answer = world.get(&viewer, page).await;
                assert_eq!(answer.status, StatusCode::OK, "{page}");
                let allowed = may(role, is_operator, permission);
                assert_eq!(answer.text.contains(offer), allowed, "{} {page} {offer}", viewer.login);
            }
        }
    }
}
