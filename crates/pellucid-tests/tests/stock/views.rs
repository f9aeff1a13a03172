//! The tables of the extension, from a stock `sqlite3` that has no keyring at all.

use crate::place::{feed, text, Place};

#[test]
fn the_shell_selects_the_state_of_what_is_attached() {
    let place = Place::new();
    let input = "ATTACH 'file:s.db?vfs=pellucid' AS s; CREATE TABLE s.t(a);
        SELECT name, encryption_state_desc, key_length, encryptor_type, attached_as FROM pellucid_encryption_keys
            JOIN pellucid_databases USING (database_id);
        SELECT count(*) FROM pellucid_certificates;
        DETACH s;
        SELECT count(*) FROM pellucid_databases;\n";
    let mut command = place.shimmed();
    let told = feed(command.env("PELLUCID_HOME", place.path("nothing")).arg("-batch"), input);
    assert_eq!(text(&told.stdout), "s.db|ENCRYPTED|256|KEY FILE|s\n0\n0\n", "{told:?}");
}
