typedef foo_t bar_t;
