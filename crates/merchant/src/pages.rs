//! The shop's pages: catalogue and cart, and the three pages of spec 4.6, in three languages.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use crate::Shop;
use crate::catalogue::PRODUCTS;
use crate::reply::{answer, refuse, unavailable};

pub(crate) fn routes() -> Router<Shop> {
    Router::new()
        .route("/", get(catalogue))
        .route("/success", get(async |s, q, h| order_page(s, q, h, End::Success).await))
        .route("/pending", get(async |s, q, h| order_page(s, q, h, End::Pending).await))
        .route("/cancelled", get(async |s, q, h| order_page(s, q, h, End::Cancelled).await))
        .route("/api/shop/order/{id}", get(story))
        .route(
            "/assets/shop.css",
            get(async || asset("text/css", include_str!("../assets/shop.css"))),
        )
        .route(
            "/assets/shop.js",
            get(async || asset("text/javascript", include_str!("../assets/shop.js"))),
        )
}

struct Texts {
    lang: &'static str,
    shop: &'static str,
    add: &'static str,
    cart: &'static str,
    empty: &'static str,
    total: &'static str,
    success: &'static str,
    success_text: &'static str,
    pending: &'static str,
    pending_text: &'static str,
    cancelled: &'static str,
    cancelled_text: &'static str,
    entity: &'static str,
    reference: &'static str,
    story: &'static str,
    back: &'static str,
    trouble: &'static str,
    happenings: [(&'static str, &'static str); 7],
}

const LANGUAGES: [Texts; 3] = [
    Texts {
        lang: "pt",
        shop: "Loja Kianda",
        add: "Juntar",
        cart: "O seu cesto",
        empty: "O cesto está vazio.",
        total: "Total",
        success: "Obrigado!",
        success_text: "Recebemos o seu pagamento. A encomenda segue assim que o serviço o confirmar.",
        pending: "Falta pagar",
        pending_text: "Pague com esta referência no ATM, na app ou no banco online.",
        cancelled: "Pagamento cancelado",
        cancelled_text: "Nada foi cobrado. O seu cesto continua aqui.",
        entity: "Entidade",
        reference: "Referência",
        story: "A história da encomenda",
        back: "Voltar à loja",
        trouble: "Não foi possível iniciar o pagamento. Tente de novo.",
        happenings: [
            ("created", "Encomenda criada"),
            ("reference", "Referência recebida do serviço"),
            ("webhook", "Webhook recebido e verificado"),
            ("query", "Estado perguntado ao serviço"),
            ("held", "Retida: uma pessoa vai ver"),
            ("fulfilled", "Encomenda enviada"),
            ("failed", "O serviço de pagamentos recusou"),
        ],
    },
    Texts {
        lang: "en",
        shop: "Kianda Shop",
        add: "Add",
        cart: "Your cart",
        empty: "The cart is empty.",
        total: "Total",
        success: "Thank you!",
        success_text: "We have your payment. Your order leaves as soon as the service confirms it.",
        pending: "Still to be paid",
        pending_text: "Pay with this reference at an ATM, in the app or in online banking.",
        cancelled: "Payment cancelled",
        cancelled_text: "Nothing was charged. Your cart is still here.",
        entity: "Entity",
        reference: "Reference",
        story: "The story of the order",
        back: "Back to the shop",
        trouble: "The payment could not be started. Try again.",
        happenings: [
            ("created", "Order created"),
            ("reference", "Reference received from the service"),
            ("webhook", "Webhook received and verified"),
            ("query", "Service asked for the state"),
            ("held", "Held: a person will look"),
            ("fulfilled", "Order sent"),
            ("failed", "The payment service refused"),
        ],
    },
    Texts {
        lang: "fr",
        shop: "Boutique Kianda",
        add: "Ajouter",
        cart: "Votre panier",
        empty: "Le panier est vide.",
        total: "Total",
        success: "Merci !",
        success_text: "Nous avons votre paiement. La commande part dès que le service le confirme.",
        pending: "Reste à payer",
        pending_text: "Payez avec cette référence au distributeur, dans l'app ou en banque en ligne.",
        cancelled: "Paiement annulé",
        cancelled_text: "Rien n'a été débité. Votre panier est toujours là.",
        entity: "Entité",
        reference: "Référence",
        story: "L'histoire de la commande",
        back: "Retour à la boutique",
        trouble: "Le paiement n'a pas pu être lancé. Réessayez.",
        happenings: [
            ("created", "Commande créée"),
            ("reference", "Référence reçue du service"),
            ("webhook", "Webhook reçu et vérifié"),
            ("query", "État demandé au service"),
            ("held", "Retenue : une personne va regarder"),
            ("fulfilled", "Commande envoyée"),
            ("failed", "Le service de paiement a refusé"),
        ],
    },
];

#[derive(Template)]
#[template(path = "shop.html")]
struct CataloguePage<'a> {
    t: &'static Texts,
    publishable_key: &'a str,
    sdk_url: &'a str,
    products: Vec<ProductView>,
}

struct ProductView {
    id: &'static str,
    name: &'static str,
    price: i64,
    price_text: String,
    /// Its first letter, as a shop without pictures shows it.
    letter: &'static str,
    sold_out: bool,
}

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage<'a> {
    t: &'static Texts,
    kind: &'static str,
    title: &'static str,
    text: &'static str,
    order: &'a str,
    entity: &'a str,
    reference: &'a str,
}

async fn catalogue(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let (place, t) = language(query.as_deref().unwrap_or_default(), &headers);
    let mut products = Vec::new();
    for product in &PRODUCTS {
        let free = match shop.store.free_stock(product.id) {
            Ok(free) => free,
            Err(fault) => return unavailable(&fault),
        };
        products.push(ProductView {
            id: product.id,
            name: product.names[place],
            price: product.price,
            price_text: money(product.price),
            letter: product.names[place].get(..1).unwrap_or_default(),
            sold_out: free == 0,
        });
    }
    let page = CataloguePage {
        t,
        publishable_key: &shop.settings.publishable_key,
        sdk_url: &shop.settings.sdk_url,
        products,
    };
    shown(&shop, page.render())
}

/// One of the three pages a payment leads to (spec 4.6).
#[derive(Clone, Copy)]
enum End {
    Success,
    Pending,
    Cancelled,
}

async fn order_page(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    end: End,
) -> Response {
    let query = query.unwrap_or_default();
    let (_, t) = language(&query, &headers);
    let end = match end {
        // The checkout's own way back also leads here with a reference that is still to be paid.
        End::Success if value(&query, "status") == "PEN" => End::Pending,
        end => end,
    };
    let (kind, title, text) = match end {
        End::Success => ("success", t.success, t.success_text),
        End::Pending => ("pending", t.pending, t.pending_text),
        End::Cancelled => ("cancelled", t.cancelled, t.cancelled_text),
    };
    let page = OrderPage {
        t,
        kind,
        title,
        text,
        order: &value(&query, "orderId"),
        entity: &value(&query, "entity"),
        reference: &value(&query, "ref"),
    };
    shown(&shop, page.render())
}

/// GET /api/shop/order/{id}: the story of an order, for its page.
async fn story(State(shop): State<Shop>, Path(id): Path<String>) -> Response {
    match (shop.store.order(&id), shop.store.story(&id)) {
        (Ok(Some(order)), Ok(story)) => answer(
            StatusCode::OK,
            &json!({ "status": order.status.code(), "held": order.held, "story": story }),
        ),
        (Ok(None), _) => {
            refuse(StatusCode::NOT_FOUND, "order_not_found", "There is no such order.")
        }
        (Err(fault), _) | (_, Err(fault)) => unavailable(&fault),
    }
}

/// The pages load the SDK and talk to the service; everything else is the shop's own.
fn shown(shop: &Shop, html: askama::Result<String>) -> Response {
    let html = html.expect("the template only prints strings");
    let mut response = Html(html).into_response();
    let sdk = shop.settings.sdk_url.trim_end_matches('/');
    let policy = format!(
        "default-src 'none'; script-src 'self' {sdk}; connect-src 'self' {sdk}; frame-src {sdk}; \
         style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([("content-type", kind), ("cache-control", "public, max-age=300")], text).into_response()
}

fn value(query: &str, name: &str) -> String {
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// As the address says, else as the browser asks, else Portuguese.
fn language(query: &str, headers: &HeaderMap) -> (usize, &'static Texts) {
    let asked = value(query, "lang");
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let first = |code: &str| LANGUAGES.iter().position(|texts| code.starts_with(texts.lang));
    let place = first(&asked).or_else(|| accepted.and_then(first)).unwrap_or(0);
    (place, &LANGUAGES[place])
}

fn money(amount: i64) -> String {
    let digits = amount.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('.');
        }
        out.push(digit);
    }
    format!("{out},00\u{a0}Kz")
}
