const bit<8> NoAction = 1;
control c() {
    action a() {}
    table fine { actions = { a; } default_action = a(); }
    table open { actions = { a; } }
    apply { fine.apply(); open.apply(); }
}
