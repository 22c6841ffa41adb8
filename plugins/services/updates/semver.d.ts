declare module 'semver/functions/compare.js' {
  export default function compare (one: string, other: string): -1 | 0 | 1
}

declare module 'semver/functions/valid.js' {
  export default function valid (version: string): string | null
}
