declare module 'semver/functions/satisfies.js' {
  export default function satisfies (version: string, range: string, options?: { readonly includePrerelease?: boolean }): boolean
}

declare module 'semver/ranges/valid.js' {
  export default function validRange (range: string): string | null
}
