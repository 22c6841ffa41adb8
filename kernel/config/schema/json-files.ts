import { hardwareSchema, manifestSchema, type Diagnostic, type HardwareInfo, type Manifest } from '../../contract/index.js'
import { checkShape, type Problem } from '../check/shape-check.js'

export type Parsed = { readonly status: 'ok', readonly data: unknown } | { readonly status: 'bad', readonly diagnostic: Diagnostic }

/** JSON with a diagnostic that says where, without showing the text around it. */
export function parseJson (text: string, file: string): Parsed {
  try {
    return { status: 'ok', data: JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text) }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    const position = Number(/position (\d+)/.exec(message)?.[1] ?? NaN)
    if (/^Unexpected end/.test(message) || position >= text.trimEnd().length) {
      return { status: 'bad', diagnostic: { file, path: '', message: 'is not valid JSON: the text ends too early; it may be truncated' } }
    }
    const line = Number.isNaN(position) ? {} : { line: text.slice(0, position).split('\n').length }
    return { status: 'bad', diagnostic: { file, path: '', message: 'is not valid JSON', ...line } }
  }
}

export interface Whole<T> {
  readonly value: T | null
  readonly problems: readonly Problem[]
}

export function readManifest (data: unknown): Whole<Manifest> {
  return checkShape(manifestSchema, data, { audience: 'file' })
}

/** hardware.json is a cache: anything wrong with it means probing again, never a refusal to start. */
export function readHardware (data: unknown): Whole<HardwareInfo> {
  return checkShape(hardwareSchema, data, { audience: 'file' })
}

/**
 * The operator's manifest lies over the images of providers: those it names replace the ones of the same short name,
 * the others stay, so that pinning one image does not lose the rest.
 */
export function layManifest (images: Manifest['toolbox_images'], operator: Manifest | null): Manifest {
  const manifest = operator ?? manifestSchema.parse({})
  return { ...manifest, toolbox_images: { ...images, ...manifest.toolbox_images } }
}
