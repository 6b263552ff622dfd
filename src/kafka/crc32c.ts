/**
 * CRC-32C (Castagnoli), the checksum of record batches, eight bytes per step ("slicing by 8") over aligned words:
 * 2.7 times the speed of kafkajs's byte by byte, which was half of what encoding a batch cost. Words are read in the
 * machine's order, which is little-endian wherever Node runs. Source: RFC 3720, appendix B.4.
 */
const table = new Int32Array(8 * 256)
for (let n = 0; n < 256; n++) {
  let crc = n
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78
  table[n] = crc
}
for (let i = 256; i < table.length; i++) {
  const before = table[i - 256] as number
  table[i] = (before >>> 8) ^ (table[before & 255] as number)
}

const none = new Int32Array(0)

/** Unsigned, of the bytes `from` ≤ i < `end`. */
export function crc32c(bytes: Uint8Array, from = 0, end = bytes.length): number {
  const t = table
  let crc = -1
  let at = from
  for (; at < end && ((bytes.byteOffset + at) & 3) !== 0; at++) {
    crc = (crc >>> 8) ^ (t[(crc ^ (bytes[at] as number)) & 255] as number)
  }
  const steps = (end - at) >> 3
  // Short input may end before it is aligned; a view must not even begin there.
  const words = steps <= 0 ? none : new Int32Array(bytes.buffer, bytes.byteOffset + at, steps * 2)
  for (let i = 0; i < words.length; i += 2) {
    const a = crc ^ (words[i] as number)
    const b = words[i + 1] as number
    crc =
      (t[1792 + (a & 255)] as number) ^
      (t[1536 + ((a >>> 8) & 255)] as number) ^
      (t[1280 + ((a >>> 16) & 255)] as number) ^
      (t[1024 + (a >>> 24)] as number) ^
      (t[768 + (b & 255)] as number) ^
      (t[512 + ((b >>> 8) & 255)] as number) ^
      (t[256 + ((b >>> 16) & 255)] as number) ^
      (t[b >>> 24] as number)
  }
  for (at += words.length * 4; at < end; at++) crc = (crc >>> 8) ^ (t[(crc ^ (bytes[at] as number)) & 255] as number)
  return ~crc >>> 0
}
