/**
 * @file
 * What an image of Fashion-MNIST is.
 */
#ifndef FASHION_IMAGES_H
#define FASHION_IMAGES_H

#define FASHION_CLASSES 10
#define FASHION_SIZE    28 /* it is as wide and as high */
#define FASHION_PIXELS  (FASHION_SIZE * FASHION_SIZE)

#endif
