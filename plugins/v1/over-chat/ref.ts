export { askChat, warningHeader, WARNING_HEADER, type AnswerWriter, type ChatCall } from './chat-call.js'
export { ChatReader, NO_USAGE, type ChatEnd, type ChatListener, type ChatUsage } from './chat-reader.js'
export { EventData } from './event-data.js'
export { bodyObject, countOf, given, isObject, malformed, objectsIn, stringIn, textOr, typeName, untranslatable, type Json } from './json.js'
