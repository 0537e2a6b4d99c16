control c() {
    action nothing() {}
    table t {
        default_action = nothing;
        actions = { nothing; }
    }
    apply { t.apply(); }
}
