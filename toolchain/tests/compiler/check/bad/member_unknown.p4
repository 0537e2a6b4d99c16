enum color { red, green }
const color c = color.gren;
