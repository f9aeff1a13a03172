//! Messages that cursors meet.

rows! {
    16905, 16, CURSOR_IS_OPEN = "The cursor is already open.";
    16911, 16, FORWARD_ONLY =
        "fetch: The fetch type {direction} cannot be used with forward only cursors.";
    16915, 16, CURSOR_EXISTS = "A cursor with the name '{name}' already exists.";
    16916, 16, UNKNOWN_CURSOR = "A cursor with the name '{name}' does not exist.";
    16917, 16, CURSOR_NOT_OPEN = "Cursor is not open.";
    16924, 16, FETCH_INTO_COUNT =
        "Cursorfetch: The number of variables declared in the INTO list must match that of selected columns.";
    16948, 16, NO_CURSOR_VARIABLE =
        "The variable '@{variable}' is not a cursor variable, but it is used in a place where a cursor variable is expected.";
    16950, 16, NO_CURSOR_ALLOCATED =
        "The variable '@{variable}' does not currently have a cursor allocated to it.";
}
