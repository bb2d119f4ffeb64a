// Package results decides how much of an attempt's result is passed inline, and resolves the rest from the store.
//
// A result up to an inline limit is passed whole. Of a larger one (see Cut), only the ends of the streams are passed,
// with the key of the attempt's record in the store. Expressions read such a result through ResolveView, lists
// through a ListCache.
//
// It imports proto and activities/store.
package results
