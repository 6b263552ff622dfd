/**
 * Unpacked length of an LZ4 frame, found by walking its tokens without copying anything: the way to refuse a bomb with
 * a library that has no cap. Throws on a damaged frame.
 * Source: LZ4 Frame Format 1.6.x (magic 0x184D2204) and LZ4 Block Format.
 */
export function lz4FrameLength(data: Buffer): number {
  let total = 0
  let at = 0
  while (at < data.length) {
    if (data.length - at < 7 || data.readUInt32LE(at) !== 0x184d2204) throw new Error('not an LZ4 frame')
    const flags = data[at + 4] as number
    const blockChecksum = (flags & 0x10) !== 0
    at += 6 + ((flags & 0x08) !== 0 ? 8 : 0) + ((flags & 0x01) !== 0 ? 4 : 0) + 1
    for (;;) {
      if (at + 4 > data.length) throw new Error('LZ4 frame is cut off')
      const word = data.readUInt32LE(at)
      at += 4
      if (word === 0) break
      const size = word & 0x7fffffff
      if (at + size > data.length) throw new Error('LZ4 block is cut off')
      total += word >= 0x80000000 ? size : blockLength(data, at, at + size)
      at += size + (blockChecksum ? 4 : 0)
    }
    if ((flags & 0x04) !== 0) at += 4
  }
  return total
}

function blockLength(data: Buffer, from: number, end: number): number {
  let at = from
  let total = 0
  const extended = (nibble: number): number => {
    let length = nibble
    if (nibble !== 15) return length
    for (;;) {
      const byte = data[at++]
      if (byte === undefined || at > end) throw new Error('LZ4 block is damaged')
      length += byte
      if (byte !== 255) return length
    }
  }
  while (at < end) {
    const token = data[at++] as number
    const literals = extended(token >> 4)
    at += literals
    total += literals
    if (at === end) return total
    if (at + 2 > end) throw new Error('LZ4 block is damaged')
    at += 2
    total += extended(token & 15) + 4
  }
  return total
}
