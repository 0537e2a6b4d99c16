#if LANES < 32
#error "LANES must be at least 32"
#endif
