import type { Picture } from './png.js'
import type { PromptGraph } from './validate.js'

/** What a graph that begins with a picture makes of it: as the engine's nodes do, but that its sampler draws noise. */
export interface WorkedOn {
  readonly width: number
  readonly height: number
  readonly count: number
  readonly pixels: (made: Picture) => Picture
}

type Inputs = PromptGraph[string]['inputs']

/** Null for a graph that begins with nothing. @param load a picture of the engine's folder for them */
export function workedOn (graph: PromptGraph, load: (name: string) => Picture): WorkedOn | null {
  const nodes = Object.values(graph)
  const inputsOf = (type: string): Inputs | undefined => nodes.find(node => node.class_type === type)?.inputs
  const encode = inputsOf('VAEEncode')
  if (encode === undefined) return null
  const scale = linked(graph, encode.pixels)
  const picture = scaled(load(String(linked(graph, scale.image).image)), Number(scale.width), Number(scale.height))
  const composite = inputsOf('ImageCompositeMasked')
  const mask = composite === undefined ? null : maskOf(graph, composite, load)
  // turbo's scheduler has it, else the sampler itself
  const denoise = Number((inputsOf('SDTurboScheduler') ?? inputsOf('KSampler'))!.denoise)
  return {
    width: picture.width,
    height: picture.height,
    count: Number(inputsOf('RepeatLatentBatch')!.amount),
    pixels: made => {
      const rgb = Buffer.alloc(picture.rgb.length)
      for (let i = 0; i < rgb.length; i++) {
        const share = mask !== null && mask[Math.floor(i / 3)] === 0 ? 0 : denoise
        rgb[i] = Math.round(picture.rgb[i]! * (1 - share) + made.rgb[i]! * share)
      }
      return { width: picture.width, height: picture.height, rgb }
    }
  }
}

/** What is transparent is 1, as the engine's loader has it; a picture without transparency is 0 all over. */
function maskOf (graph: PromptGraph, composite: Inputs, load: (name: string) => Picture): Buffer {
  const scale = linked(graph, linked(graph, composite.mask).image)
  const { width, height, alpha } = load(String(linked(graph, linked(graph, scale.image).mask).image))
  const open = Buffer.from((alpha ?? Buffer.alloc(width * height, 255)).map(value => value === 255 ? 0 : 1))
  const plane = Buffer.from([...open].flatMap(value => [value, value, value]))
  const { rgb } = scaled({ width, height, rgb: plane }, Number(scale.width), Number(scale.height))
  return Buffer.from(rgb.filter((_, i) => i % 3 === 0))
}

function linked (graph: PromptGraph, value: unknown): Inputs {
  return graph[String((value as readonly unknown[])[0])]!.inputs
}

/** Cut to the shape around the middle, then the nearest pixel. */
function scaled ({ width, height, rgb }: Picture, toWidth: number, toHeight: number): Picture {
  const factor = Math.min(width / toWidth, height / toHeight)
  const [left, top] = [(width - toWidth * factor) / 2, (height - toHeight * factor) / 2]
  const out = Buffer.alloc(toWidth * toHeight * 3)
  for (let y = 0; y < toHeight; y++) {
    for (let x = 0; x < toWidth; x++) {
      const line = Math.min(height - 1, Math.floor(top + (y + 0.5) * factor))
      const from = line * width + Math.min(width - 1, Math.floor(left + (x + 0.5) * factor))
      rgb.copy(out, (y * toWidth + x) * 3, from * 3, from * 3 + 3)
    }
  }
  return { width: toWidth, height: toHeight, rgb: out }
}
