-- Version 3 to 4: types that are paused.
CREATE TABLE type_pauses (
    type   TEXT    NOT NULL PRIMARY KEY,
    until  INTEGER NOT NULL,
    since  INTEGER NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;
