package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"nginxoracle/oracle/exit"
	"nginxoracle/oracle/reference"
)

func newImage(o *options) *cobra.Command {
	version := reference.Version
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build the reference's image out of Debian's packages, with no image registry in reach",
		Long: `image fetches nginx and the libraries it needs as Debian's packages (signatures
checked, nothing installed) and imports them into the container engine as an
image on an empty base. It prints the image's name.`,
		Example: "  oracle image\n  oracle image --nginx 1.22",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := reference.Packaged(version); err != nil {
				return exit.Errorf(exit.Usage, "image: --nginx: %w", err)
			}
			name, err := reference.BuildImage(cmd.Context(), version, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
			if err != nil {
				return exit.Errorf(exit.Rig, "image: %w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), name)
			return nil
		},
	}
	cmd.Flags().StringVar(&version, "nginx", version, "version of nginx: 1.22, 1.26 or 1.30")
	return cmd
}
