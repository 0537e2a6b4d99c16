enum color { red = 1, green = 2 }
