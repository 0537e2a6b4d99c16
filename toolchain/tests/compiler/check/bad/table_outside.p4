table t {
    actions = {}
}
