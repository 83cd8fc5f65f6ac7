//! Runs the same test on the embedded database and on PostgreSQL.

/// Makes of each function that takes a `&Place` two tests.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::support::Place::sqlite());
            })+
        }
        mod on_postgres {
            $(#[test]
            fn $name() {
                let database = crate::support::postgres::FreshDatabase::new();
                super::$name(&database.place());
            })+
        }
    };
}
