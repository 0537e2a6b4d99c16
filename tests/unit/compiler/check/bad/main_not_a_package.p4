extern main {}
