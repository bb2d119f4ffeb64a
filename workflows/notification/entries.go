package notification

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Entries returns the entries for an event.
func Entries(all []*v1.Notification, event string) []*v1.Notification {
	var found []*v1.Notification
	for _, entry := range all {
		if slices.Contains(entry.GetOn(), event) {
			found = append(found, entry)
		}
	}
	return found
}
