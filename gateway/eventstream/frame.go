package eventstream

// Frame returns the encoded form of an event. If id is "", the event has no id line, and a client that resumes continues
// after the previous event with an id.
func Frame(event, id string, data []byte) []byte {
	b := make([]byte, 0, len(event)+len(id)+len(data)+24)
	b = append(append(append(b, "event: "...), event...), '\n')
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}
