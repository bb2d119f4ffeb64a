package follow

import (
	"io"
	"os"
	"time"

	"switchyard/cli/tui"
)

// Terminal is the place where a run is shown, with the settings for interrupts.
type Terminal struct {
	// Stdout receives documents.
	Stdout io.Writer
	// Screen is standard error, in the given Style.
	Screen *tui.Screen
	Style  tui.Style
	// Redraws is true if Screen can redraw a table. PlainScreen is true if Screen shows only text.
	Redraws, PlainScreen bool
	// Now is the clock.
	Now func() time.Time
	// ForceAfter is how long an interrupted run may take to end, and KilledEndTimeout how long it may take after its
	// programs were killed.
	ForceAfter, KilledEndTimeout time.Duration
	// ForceTimeout bounds the request to end a run by force, and ForcedEndTimeout the wait for its end after that.
	ForceTimeout, ForcedEndTimeout time.Duration
	// AnswerTimeout is how long a second signal waits for the answer to the cancellation of a run on a gateway.
	AnswerTimeout time.Duration
	// LogsTimeout is how long logs may lag behind the end of their run.
	LogsTimeout time.Duration
	// OnSecondSignal sets the action of the second signal. nil ends that.
	OnSecondSignal func(do func())
	// Divert offers each signal to a function, which reports whether it takes the signal. nil ends that.
	Divert func(take func(os.Signal) bool)
}
