package svg

// Hatches returns an element without size that defines the fill patterns of wait reasons. A page
// needs it once, outside of the elements that are replaced.
func Hatches() string {
	return `<svg class="hatches" width="0" height="0" aria-hidden="true">` + patterns + `</svg>`
}

// patterns defines a pattern with the id h-WORD for each of timeline.Reasons.
const patterns = `<defs>` +
	`<pattern id="h-node" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="h-back" width="6" height="6"/><rect class="h-line" width="2" height="6"/></pattern>` +
	`<pattern id="h-backoff" width="6" height="6" patternUnits="userSpaceOnUse"><rect class="h-back" width="6" height="6"/><circle class="h-line" cx="3" cy="3" r="1.3"/></pattern>` +
	`<pattern id="h-held" width="5" height="5" patternUnits="userSpaceOnUse"><rect class="h-back" width="5" height="5"/><rect class="h-line" width="2" height="5"/></pattern>` +
	`<pattern id="h-lock" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="h-back" width="7" height="7"/><rect class="h-line" width="1.5" height="7"/><rect class="h-line" width="7" height="1.5"/></pattern>` +
	`<pattern id="h-start" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect class="h-back" width="4" height="4"/><rect class="h-line" width="1.3" height="4"/></pattern>` +
	`<pattern id="h-approval" width="5" height="5" patternUnits="userSpaceOnUse"><rect class="h-back" width="5" height="5"/><rect class="h-line" width="5" height="2"/></pattern>` +
	`<pattern id="h-paused" width="12" height="14" patternUnits="userSpaceOnUse" y="3"><rect class="h-back" width="12" height="14"/><rect class="h-line" x="2" y="4" width="2" height="6"/><rect class="h-line" x="6" y="4" width="2" height="6"/></pattern>` +
	`<pattern id="h-away" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect class="h-back" width="9" height="9"/><rect class="h-line" width="4" height="9"/></pattern>` +
	`<pattern id="h-store" width="8" height="4" patternUnits="userSpaceOnUse"><rect class="h-back" width="8" height="4"/><rect class="h-line" width="4" height="2"/></pattern>` +
	`</defs>`
