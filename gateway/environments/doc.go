// Package environments answers the calls about named environments. It may import proto.
package environments
