control c() {
    @deprecated("use fine") action old() {}
    action fine() {}
    table t { actions = { old; fine; } default_action = fine(); }
    apply { t.apply(); }
}
