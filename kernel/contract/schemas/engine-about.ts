import { z } from 'zod'

export const engineAboutSchema = z.strictObject({
  license: z.string().min(1).meta({ description: 'SPDX expression' }),
  homepage: z.url(),
  image: z.strictObject({ license: z.string().min(1).optional(), homepage: z.url().optional() }).optional()
    .meta({ description: 'Licence of the image, if it holds more than the engine' })
}).meta({ title: 'EngineAbout', description: 'Licence and homepage of an engine and of its image' })
