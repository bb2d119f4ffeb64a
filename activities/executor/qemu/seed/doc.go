// Package seed writes what cloud-init in a virtual machine needs at its first boot: a NoCloud seed, which is a CD image
// with the files user-data and meta-data. The seed sets the name of the machine, the user who may log in, the
// authorized keys of that user, and the SSH host key of the machine, so that the node need not trust a key on first
// use.
//
// It imports nothing of Switchyard. The format is that of https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html.
package seed
