package eventstream

// Frame returns an event as it is sent. The event has no id line if id is "": a client that continues then continues after
// the event before it.
func Frame(event, id string, data []byte) []byte {
	b := make([]byte, 0, len(event)+len(id)+len(data)+24)
	b = append(append(append(b, "event: "...), event...), '\n')
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}
