// Package storetest provides fakes of the cloud APIs whose buckets can be stores.
package storetest
