header telemetry_t { varbit<2147483648> stack; }
