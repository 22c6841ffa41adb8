import { listOf, textUpTo } from './shape.js'

const LONGEST_TAG = 512
export const MOST_TAGS = 200

/** Tags that are stored. Those of a document stand at each of its memories. */
export const storedTags = listOf(textUpTo(LONGEST_TAG), MOST_TAGS)
