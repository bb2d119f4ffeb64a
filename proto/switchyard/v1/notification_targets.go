package switchyardv1

// NotificationTargetType returns the word for what receives the messages of a target: the name of the field with its configuration.
// It returns "" if the target has none.
func NotificationTargetType(t *NotificationTarget) string {
	m := t.ProtoReflect()
	if field := m.WhichOneof(m.Descriptor().Oneofs().ByName("config")); field != nil {
		return string(field.Name())
	}
	return ""
}

// NotificationTargetTypes returns the words for all types of targets.
func NotificationTargetTypes() []string {
	var types []string
	fields := (&NotificationTarget{}).ProtoReflect().Descriptor().Oneofs().ByName("config").Fields()
	for i := range fields.Len() {
		types = append(types, string(fields.Get(i).Name()))
	}
	return types
}
