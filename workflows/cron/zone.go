package cron

import (
	_ "embed"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for machines without time zones

	"switchyard/workflows/nearest"
)

// zoneText holds the names of the IANA time zones, one per line.
//
//go:embed zones.txt
var zoneText string

// zones returns the names of the time zones.
var zones = sync.OnceValue(func() []string { return strings.Fields(zoneText) })

// Zone returns a time zone by its IANA name; "" means UTC. The error is an *Error.
func Zone(name string) (*time.Location, error) {
	// Local differs from machine to machine.
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return zone, nil
	}
	return nil, &Error{"which is not a time zone", zoneHint(name)}
}

// abbreviations maps common names of time zones that IANA does not have to zone names.
var abbreviations = map[string]string{
	"cest": "Europe/Berlin", "bst": "Europe/London", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles",
	"edt": "America/New_York", "cst": "America/Chicago", "cdt": "America/Chicago", "mdt": "America/Denver", "aest": "Australia/Sydney", "local": "the zone of a place, such as Europe/Berlin",
}

// zoneHint returns a hint that names the time zone that was probably meant.
func zoneHint(name string) string {
	folded := nearest.Fold(name)
	if use := abbreviations[folded]; use != "" {
		return "did you mean " + use + "?"
	}
	for _, zone := range zones() {
		if _, city, ok := strings.Cut(zone, "/"); ok && nearest.Fold(city) == folded {
			return "did you mean " + zone + "?"
		}
	}
	if hint := nearest.DidYouMean(name, zones()); hint != "" {
		return hint
	}
	return "write the name of a place in the IANA database, such as Europe/Berlin or America/New_York, or UTC"
}
