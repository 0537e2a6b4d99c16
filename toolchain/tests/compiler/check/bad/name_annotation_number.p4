@name(5) action a() {}
