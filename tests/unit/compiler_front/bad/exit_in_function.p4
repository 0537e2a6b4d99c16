void f() {
    exit;
}
