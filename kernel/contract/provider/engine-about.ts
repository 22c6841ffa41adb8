/** Licence and origin of an engine and of its image. */
export interface EngineAbout {
  /** SPDX expression: `MIT`, `AGPL-3.0-only`. */
  readonly license: string
  /** Address of a page. */
  readonly homepage: string
  /** The image's own, where it holds more than the engine. */
  readonly image?: { readonly license?: string | undefined, readonly homepage?: string | undefined } | undefined
}

/** `licence MIT, https://example.org; the image: Apache-2.0`. Pure. */
export function aboutText ({ license, homepage, image = {} }: EngineAbout): string {
  const own = [image.license, image.homepage].filter(part => part !== undefined)
  return `licence ${license}, ${homepage}${own.length === 0 ? '' : `; the image: ${own.join(', ')}`}`
}
