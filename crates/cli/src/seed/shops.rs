//! Who sells what in a seeded sandbox. The shops are made up.

pub(super) struct Shop {
    pub name: &'static str,
    /// In its addresses.
    pub slug: &'static str,
    /// What is sold, and for how many kwanza.
    pub products: &'static [(&'static str, i64)],
}

pub(super) const SHOPS: [Shop; 6] = [
    Shop {
        name: "Livraria Kianda",
        slug: "kianda",
        products: &[
            ("Livro de receitas de Luanda", 15_000),
            ("Mayombe, edição de bolso", 8_500),
            ("Cadernos escolares, 10 unidades", 4_200),
            ("Dicionário de kimbundu", 12_400),
        ],
    },
    Shop {
        name: "Mercado do Kinaxixi",
        slug: "kinaxixi",
        products: &[
            ("Fuba de milho, 5 kg", 3_600),
            ("Óleo de palma, 2 l", 5_800),
            ("Arroz, saco de 25 kg", 21_500),
            ("Café do Amboim, 1 kg", 11_900),
            ("Cabaz do mês", 64_000),
        ],
    },
    Shop {
        name: "Farmácia do Kilamba",
        slug: "kilamba",
        products: &[
            ("Repelente, 200 ml", 3_950),
            ("Fraldas, pacote de 40", 13_700),
            ("Termómetro digital", 7_800),
            ("Vitamina C, 60 comprimidos", 6_400),
        ],
    },
    Shop {
        name: "Electro Benguela",
        slug: "benguela",
        products: &[
            ("Ventoinha de pé", 28_500),
            ("Telefone, 64 GB", 148_000),
            ("Gerador, 2,5 kVA", 385_000),
            ("Carregador USB-C", 9_800),
            ("Painel solar, 150 W", 172_000),
        ],
    },
    Shop {
        name: "Moda Samakaka",
        slug: "samakaka",
        products: &[
            ("Pano samakaka, 2 m", 12_000),
            ("Vestido comprido", 34_500),
            ("Camisa de linho", 18_900),
            ("Sandálias de couro", 22_000),
        ],
    },
    Shop {
        name: "Bilhetes da Ilha",
        slug: "ilha",
        products: &[
            ("Concerto de kizomba, 1 bilhete", 7_500),
            ("Teatro, 1 bilhete", 5_000),
            ("Passeio de barco, 1 pessoa", 26_000),
            ("Festival da praia, passe de 3 dias", 45_000),
        ],
    },
];

/// The shop whose server had a bad day, and has one now.
pub(super) const ILL: &str = "kilamba";
