// Package page tests the page of the gateway in a real browser, against a real `switchyard dev` with real runs: what each view
// shows, that it follows what happens, what people do on it by keyboard, and that no text of a user gets out of its place. It
// has no code of its own beside tests.
package page
