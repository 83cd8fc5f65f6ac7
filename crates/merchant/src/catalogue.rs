//! What the shop sells. Prices are here and nowhere else: no page is believed about them.

pub(crate) struct Product {
    pub id: &'static str,
    /// In Portuguese, English and French.
    pub names: [&'static str; 3],
    /// Whole kwanza, for one.
    pub price: i64,
    pub stock: i64,
}

pub(crate) const PRODUCTS: [Product; 6] = [
    Product {
        id: "livro-receitas",
        names: ["Livro de receitas de Luanda", "Luanda cookbook", "Livre de cuisine de Luanda"],
        price: 15_000,
        stock: 500,
    },
    Product {
        id: "cafe-amboim",
        names: ["Café do Amboim, 250 g", "Amboim coffee, 250 g", "Café d'Amboim, 250 g"],
        price: 6_500,
        stock: 500,
    },
    Product {
        id: "pano-samakaka",
        names: ["Pano samakaka, 2 m", "Samakaka cloth, 2 m", "Tissu samakaka, 2 m"],
        price: 12_000,
        stock: 500,
    },
    Product {
        id: "mel-moxico",
        names: ["Mel do Moxico, 500 g", "Moxico honey, 500 g", "Miel de Moxico, 500 g"],
        price: 4_800,
        stock: 500,
    },
    Product {
        id: "cesto-huila",
        names: ["Cesto da Huíla", "Basket from Huíla", "Panier de Huíla"],
        price: 9_900,
        stock: 500,
    },
    Product {
        id: "kissange",
        names: ["Kissange de mão", "Hand kissange", "Kissange à main"],
        price: 28_000,
        stock: 500,
    },
];

pub(crate) fn product(id: &str) -> Option<&'static Product> {
    PRODUCTS.iter().find(|product| product.id == id)
}
