// Package browsertest drives a real browser in tests: Debian's chromium without a window, through the Chrome DevTools Protocol.
//
// [NewProfile] returns a profile with cookies, storage and connections of its own, as of one person at one computer, and
// [Profile.Tab] opens a tab in it. One browser serves all profiles of a test process; it starts with the first profile and
// ends with the last one. A [Tab] records every request that its page makes, and what the page does wrong: [Tab.Check] fails
// a test whose page has written an error to the console, has thrown an exception, was stopped by its
// Content-Security-Policy, or has sent a request to another origin than its own. [Tab.CheckAccessibility] fails a test whose
// page has findings of axe-core.
//
// Methods of a tab fail the test that has opened the profile, and belong on the goroutine of this test.
//
// Only tests import it. Of this module it may import activities/filelock and dev/testneeds.
package browsertest
