"""A picture file (PNG, JPEG, TIFF) as a PDF whose pages are pictures, so that it is shown, read by OCR and cited as one."""

from __future__ import annotations

import io
from typing import Any

import pypdfium2 as pdfium

from assay.ingest.formats.detect import PICTURES
from assay.ingest.parsed import Refused, Status

MOST_PIXELS = 60_000_000  # of one picture, checked before it is unpacked
MOST_FRAMES = 200
LONG_SIDE = 842.0  # points: the height of A4
TOO_LARGE = "It has {pixels:,} pixels, more than the limit of {most:,}; save it smaller."
DAMAGED = "It is a damaged picture; get a fresh copy, or scan it again."
NO_DECODER = "It is a picture, which is read with OCR; install it with: pip install 'assay[ocr]'."


def is_picture(data: bytes) -> bool:
    return data.startswith(PICTURES)


def open_picture(data: bytes) -> pdfium.PdfDocument:
    """A document with a page for each frame. Raises `Refused`."""
    try:
        from PIL import Image, ImageOps
    except ImportError as problem:
        raise Refused(Status.unsupported, NO_DECODER) from problem
    Image.MAX_IMAGE_PIXELS = None  # the limit is checked here, and refused rather than warned of
    document = pdfium.PdfDocument.new()
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "TIFF")) as opened:
            for number in range(min(getattr(opened, "n_frames", 1), MOST_FRAMES)):
                opened.seek(number)
                pixels = opened.width * opened.height
                if pixels > MOST_PIXELS:
                    raise Refused(Status.too_large, TOO_LARGE.format(pixels=pixels, most=MOST_PIXELS))
                _add_page(document, ImageOps.exif_transpose(opened).convert("RGB"))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as problem:
        raise Refused(Status.corrupt, DAMAGED) from problem
    return document


def _add_page(document: pdfium.PdfDocument, picture: Any) -> None:
    scale = LONG_SIDE / max(picture.size)
    width, height = picture.width * scale, picture.height * scale
    page, drawn = document.new_page(width, height), pdfium.PdfImage.new(document)
    drawn.set_bitmap(pdfium.PdfBitmap.from_pil(picture))
    drawn.set_matrix(pdfium.PdfMatrix().scale(width, height))
    page.insert_obj(drawn)
    page.gen_content()
    page.close()
