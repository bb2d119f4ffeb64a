package follow

import (
	"io"
	"time"

	"switchyard/cli/tui"
)

// Terminal is where a run is shown, and how the user interrupts.
type Terminal struct {
	// Stdout gets documents.
	Stdout io.Writer
	// Screen is standard error, in the given Style.
	Screen *tui.Screen
	Style  tui.Style
	// Redraws is set if a picture on Screen can be drawn again. PlainScreen is set if Screen shows only text.
	Redraws, PlainScreen bool
	// Now is the clock.
	Now func() time.Time
	// ForceAfter is how long an interrupted run may take to end, and KilledEndTimeout how
	// long it may take once its programs were killed.
	ForceAfter, KilledEndTimeout time.Duration
	// OnSecondSignal sets what the second signal does.
	OnSecondSignal func(do func())
}
