//go:build !race

package workers

// raceDetector says that the tests run under the race detector.
const raceDetector = false
