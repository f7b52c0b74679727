package http

// StaticValue is a text without variables, whatever is in it.
func StaticValue(text string) *ComplexValue {
	return &ComplexValue{Text: text, Static: true, value: []byte(text)}
}
